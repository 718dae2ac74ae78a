"""A web service that consumes: it keeps the sum of each customer's orders, and shows it.

    DUOLOG_URL=http://127.0.0.1:7070 uvicorn --app-dir examples orders_service:app
    curl http://127.0.0.1:8000/totals

DUOLOG_URL is where `duolog serve` answers; its log has a topic orders, as examples/orders_to_log.py
writes it. Start the service several times: its instances share the topic's partitions.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from duolog import AsyncConsumer

totals: Counter[str] = Counter()


async def consume() -> None:
    async with AsyncConsumer(
        "orders", group="totals", start="earliest", auto_ack=False
    ) as consumer:
        while True:
            for record in await consumer.poll(timeout_seconds=30):
                totals[record.value["customer"]] += record.value["amount"]
            await consumer.ack()  # a real one keeps its totals, and acknowledges what it has kept


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    consuming = asyncio.create_task(consume())
    yield
    consuming.cancel()
    await asyncio.gather(consuming, return_exceptions=True)


app = FastAPI(lifespan=lifespan)


@app.get("/totals")
async def show() -> dict[str, float]:
    return dict(totals)
