FROM python:3.11-slim-bookworm
WORKDIR /srv/lastro
RUN useradd --system --create-home --home-dir /var/lib/lastro lastro
COPY requirements.lock.txt pyproject.toml README.md LICENSE ./
RUN pip install --no-cache-dir --require-hashes --requirement requirements.lock.txt
COPY app app
COPY adapters adapters
COPY graph graph
COPY cypher cypher
RUN pip install --no-cache-dir --no-deps --no-build-isolation .
USER lastro
ENV LASTRO_DATA=/var/lib/lastro/data
EXPOSE 8420
CMD ["lastro", "serve"]
