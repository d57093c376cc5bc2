"""What a user writes; mypy --strict reads it."""

import placet

job = placet.Job(model="llama-3.1-8b", cluster="h100-sxm:1", seq=8192, global_batch=64)
found: placet.Derivation = placet.derive(job=job, placement="dp=8:zero3")
print(found.headline(), found.peak_bytes / 1e9)
plans: placet.Plans = placet.plan(job=job, top=1)
best: placet.Plan | None = plans.best
if best is not None:
    print(best.placement, best.step_seconds)
try:
    placet.derive("llama-3.1-8b", placement="dp=8:zero9")
except placet.InputError as error:
    print(error.nearest)
