"""Published studies of attention, one package each; `headscope study` finds them by an entry point."""
