"""What to run, as data: the CreateTrainingJob document, and the parts that it is made of."""
