"""Exit code 0 when the host of this container is ready. For HEALTHCHECK: no shell, no curl."""

import os
import ssl
import sys
import urllib.request

port = os.environ.get("DUOLOG_LISTEN", "0.0.0.0:7070").rpartition(":")[2]
url = os.environ.get("DUOLOG_HEALTH_URL", f"http://127.0.0.1:{port}/readyz")
# The certificate names the outside; whom this asks is this container itself.
unverified = ssl._create_unverified_context()  # noqa: S323, SLF001
try:
    with urllib.request.urlopen(url, timeout=4, context=unverified) as answer:  # noqa: S310
        sys.exit(answer.status != 200)
except OSError as error:
    sys.exit(f"{url}: {error}")
