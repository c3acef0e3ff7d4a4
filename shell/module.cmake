set(WF_SHELL_SOURCES commands.c complete.c editor.c journal.c lists.c output.c copy_in.c dump.c main.c option.c options.c progress.c render_box.c render_text.c repl.c script.c terminal.c)
