"""The facts and actions of `codegen` as tools of the Model Context Protocol."""
