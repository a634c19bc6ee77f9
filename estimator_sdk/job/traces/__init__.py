"""A job in the Trace Event Format, which Perfetto and Chrome open.

trace.py         what its hosts and ranks did, from their logs
window.py        a span of time in which running ranks record in detail, on request
window_trace.py  what they have recorded in it
"""
