"""How the tables of earlier versions become those of this one."""
