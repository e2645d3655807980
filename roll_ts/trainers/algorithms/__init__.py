"""What a policy-gradient algorithm is made of, as pure functions: advantages, corrections, objective, penalties.

An algorithm of the literature is a choice of each (`docs/algorithms.md` lists them). Symbols in all modules: pi_b
sampled the token (its log-prob came with the sample), pi_old are the trainer's weights at the start of the update, pi
the weights being optimised, pi_ref the weights that the run began with. Per-token tensors are [batch, time]; `mask` is
true on generated tokens; a token outside of the mask has no influence, whatever it holds.
"""
