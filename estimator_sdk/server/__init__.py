"""The console: a page in the browser that shows the jobs, and the API under it. `docs/console.md` describes both.

It asks jobs through `job` and `backends`; its packages, of the extra `console`, are imported here alone.
"""
