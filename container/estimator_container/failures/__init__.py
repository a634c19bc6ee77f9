"""Why a job failed, and how it is noticed: verdicts, kinds, hangs, late ranks, stalls, weights that drift apart."""
