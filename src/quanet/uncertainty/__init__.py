"""How sure an estimate is: intervals and regions for every quantifier."""
