"""Where else a job's metrics can be shown: a module each, which imports that product's own library when it is used."""
