figures = None
