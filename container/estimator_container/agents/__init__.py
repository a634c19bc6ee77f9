"""Programs that move data beside a job: input channels, checkpoints, outputs, and the code.

Those that go on as long as the job does are agents: `agent` is what they have in common, `watching` what those do that
look at a script's folders.
"""
