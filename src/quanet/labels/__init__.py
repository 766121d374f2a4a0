"""Human labels: refine an estimate, plan labels, and correct the rates of a judge."""
