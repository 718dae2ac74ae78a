"""What a benchmark says: figures, each with its reference and its target."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Target:
    """A bound, on the measured value itself or on its ratio to the reference."""

    bound: float
    is_lowest: bool  # True: at least; False: at most
    of: Literal["value", "ratio"] = "value"

    def is_reached(self, value: float) -> bool:
        return value >= self.bound if self.is_lowest else value <= self.bound


def at_least(bound: float) -> Target:
    return Target(bound, is_lowest=True)


def at_most(bound: float) -> Target:
    return Target(bound, is_lowest=False)


def at_least_of_reference(bound: float) -> Target:
    return Target(bound, is_lowest=True, of="ratio")


def at_most_of_reference(bound: float) -> Target:
    return Target(bound, is_lowest=False, of="ratio")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value: the median of its rounds, with the lowest and the highest of them."""

    name: str
    value: float
    unit: str
    reference: float | None = None  # in the same unit, from the same run
    target: Target | None = None
    lowest: float | None = None
    highest: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.reference if self.reference else None

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None when there is none."""
        if self.target is None:
            return None
        judged = self.value if self.target.of == "value" else self.ratio
        return judged is not None and self.target.is_reached(judged)

    @property
    def measured_text(self) -> str:
        return with_unit(self.value, self.unit)

    @property
    def reference_text(self) -> str:
        return "" if self.reference is None else with_unit(self.reference, self.unit)

    @property
    def ratio_text(self) -> str:
        return "" if self.ratio is None else short(self.ratio)

    @property
    def target_text(self) -> str:
        if self.target is None:
            return ""
        sign = "≥" if self.target.is_lowest else "≤"
        if self.target.of == "ratio":
            return f"{sign} {self.target.bound:g} x"
        return f"{sign} {self.target.bound:,g} {self.unit}"

    @property
    def reached_text(self) -> str:
        return "" if self.reached is None else "yes" if self.reached else "no"

    def fields(self) -> dict[str, Any]:
        """The figure as JSON says it."""
        return {
            "name": self.name,
            "measured": self.value,
            "unit": self.unit,
            "reference": self.reference,
            "ratio": self.ratio,
            "target": None if self.target is None else asdict(self.target),
            "reached": self.reached,
            "lowest": self.lowest,
            "highest": self.highest,
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Figure:
        """The figure that `fields` described."""
        target = fields["target"]
        return cls(
            fields["name"],
            fields["measured"],
            fields["unit"],
            fields["reference"],
            None if target is None else Target(**target),
            fields["lowest"],
            fields["highest"],
        )


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of one benchmark, and what they were measured on."""

    benchmark: str
    what: str
    reference: str
    figures: tuple[Figure, ...]


def short(value: float) -> str:
    """Three digits, more only where they stand before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def with_unit(value: float, unit: str) -> str:
    return f"{short(value)} {unit}".strip()
