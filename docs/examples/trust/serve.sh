echo "a script of somebody else runs"
