# Quoin with its embedded store: a static program and nothing else. Dockerfile.fdb is for a FoundationDB cluster.
#
#   docker build -t quoin .
#   docker run -p 6379:6379 -e QUOIN_REQUIREPASS=… -v quoin-data:/var/lib/quoin quoin
#
# Without a password it answers only clients within its container (protected mode). To try it without
# one, publish the port on this machine's loopback only:
#
#   docker run -p 127.0.0.1:6379:6379 -e QUOIN_PROTECTED_MODE=no -v quoin-data:/var/lib/quoin quoin

FROM rust:1.95-slim-bookworm AS builder
# The allocator is built with make; tools judge servers by the system's certificates.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates make musl-tools \
    && rm -rf /var/lib/apt/lists/*
# On ARM, gcc's functions for atomic operations need glibc, and pages have up to 64 KiB.
ENV CFLAGS_aarch64_unknown_linux_musl=-mno-outline-atomics
WORKDIR /build
COPY . .
RUN target="$(uname -m)-unknown-linux-musl" \
    && rustup target add "$target" \
    && if [ "$(uname -m)" = aarch64 ]; then export JEMALLOC_SYS_WITH_LG_PAGE=16; fi \
    && cargo build --locked --profile dist --target "$target" --bin quoin \
    && install -D "target/$target/dist/quoin" /image/usr/bin/quoin \
    && install -D --mode 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
    && mkdir /data

FROM scratch
COPY --from=builder /image /
# A new volume gets the owner of the folder.
COPY --from=builder --chown=10001:10001 /data /var/lib/quoin
USER 10001:10001
WORKDIR /var/lib/quoin
VOLUME /var/lib/quoin
# All addresses of the container: which of the host's reach it is up to `-p`. Protected mode stays
# on, so that `-p` alone opens the data to nobody.
ENV QUOIN_BIND=0.0.0.0
ENV QUOIN_DATA_DIR=/var/lib/quoin/data
EXPOSE 6379
# Finds the server by the variables; one that is started with flags needs them here too.
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s CMD ["/usr/bin/quoin", "ping"]
ENTRYPOINT ["/usr/bin/quoin"]
