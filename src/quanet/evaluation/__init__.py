"""How good an estimate is: errors on bags, searches, lower bounds and significance; and the diagnosis of one bag."""
