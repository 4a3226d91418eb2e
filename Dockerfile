# polctl with git and nothing else, for jobs of CI and for `polctl verify` at a daemon.
#
#   docker build -t polctl .
#   docker run --rm -v "$PWD:/work:ro" polctl check --base origin/main

FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin polctl

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/polctl /usr/local/bin/polctl
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/polctl/
# A policy is judged, never changed: no rights are needed.
USER 65534:65534
WORKDIR /work
ENTRYPOINT ["polctl"]
CMD ["--help"]
