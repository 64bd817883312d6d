#!/usr/bin/perl
# from_0_1.pl FILE...    renames what weft 0.1 called otherwise, in place. The table is in docs/from_0_1.md, beside this script.
# Run it once: some new names are another thing's old name (weft_max), so a second run would rename those again.
use strict;
use warnings;
use File::Basename;

open(my $page, '<', dirname($0) . '/from_0_1.md') or die "from_0_1.md: $!\n";
my %name = map { /^\| `(weft_\w+)` \| `(weft_\w+)` \|/ ? ($1 => $2) : () } <$page>;
close $page;

# The functions of an object whose type is in the table are renamed with it.
my $old = join '|', sort { length $b <=> length $a } keys %name;
my $verb = '_new|_run|_masked|_update|_swap|_step';
for my $path (@ARGV) {
    open(my $in, '<', $path) or die "$path: $!\n";
    local $/;
    my $text = <$in>;
    close $in;
    (my $made = $text) =~ s/\b(?:($old)|($old)($verb))\b/defined $1 ? $name{$1} : exists $name{"$2$3"} ? $name{"$2$3"} : "$name{$2}$3"/ge;
    next if $made eq $text;
    open(my $out, '>', $path) or die "$path: $!\n";
    print $out $made;
    close $out or die "$path: $!\n";
    print "$path\n";
}
