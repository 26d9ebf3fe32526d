# subledger as an image: docker build -t subledger .
#
# The versions are pinned; raise them on purpose. For a digest instead of a tag see docs/operations.md.
FROM swift:6.3.1-bookworm AS build

RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        libcurl4-openssl-dev libmicrohttpd-dev libpq-dev libssl-dev pkg-config \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /source
COPY Package.swift ./
COPY Sources Sources
COPY Projections Projections
COPY schema schema
# The benchmarks are part of the program (`subledger bench`); the manifest names the tests.
COPY Tests Tests

RUN swift build --configuration release --product subledger --static-swift-stdlib \
    && install -D --strip "$(swift build --configuration release --show-bin-path)/subledger" \
        /installed/subledger

FROM debian:12.11-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        ca-certificates libcurl4 libmicrohttpd12 libpq5 libssl3 libstdc++6 tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 subledger \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /etc/subledger \
        --shell /usr/sbin/nologin subledger

COPY --from=build /installed/subledger /usr/local/bin/subledger

# subledger.json is looked for here.
WORKDIR /etc/subledger
USER 10001:10001
ENV SUBLEDGER_LISTEN=0.0.0.0:8080
EXPOSE 8080
STOPSIGNAL SIGTERM

HEALTHCHECK --interval=10s --timeout=6s --start-period=10s --retries=3 \
    CMD ["subledger", "doctor", "--only-url", "--url", "http://127.0.0.1:8080"]

ENTRYPOINT ["subledger"]
CMD ["serve"]
