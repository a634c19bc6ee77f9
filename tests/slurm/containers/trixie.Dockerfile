# Slurm 24.11 and what the Python of the tests needs of a system, which brings everything else.
ARG BASE
FROM ${BASE}
RUN printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d \
 && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      slurm-wlm munge environment-modules charliecloud-runtime ca-certificates gcc git libc6-dev procps iproute2 strace \
      libbz2-1.0 libffi8 liblzma5 libncursesw6 libreadline8t64 libsqlite3-0 libssl3t64 zlib1g \
 && rm -rf /var/lib/apt/lists/*
