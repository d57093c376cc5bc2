#!/bin/sh
# said.sh PROGRAM HELP2MAN FOLDER: what the program says of itself, as man pages and completions.
set -eu
program=$1 help2man=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder/man1"

# page NAME COMMAND ABOUT
page() {
  "$help2man" --no-info --name "$3" --version-string "$("$program" --version | cut -d' ' -f2)" \
    --output "$folder/man1/$1.1" "$2"
  gzip -9n "$folder/man1/$1.1"
}

page placet "$program" "memory, communication and correctness of distributed training"
"$program" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\)  *\(.*\)/\1 \2/p' |
  while read -r name about; do page "placet-$name" "$program $name" "$about"; done
for shell in bash fish; do "$program" completion "$shell" >"$folder/$shell"; done
touch "$folder/done"
