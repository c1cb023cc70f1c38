# Burns CPU time while it is loaded.
sub within {
    compare();
}

within();

1;
