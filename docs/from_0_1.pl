#!/usr/bin/perl
# from_0_1.pl FILE...    renames what weft 0.1 called otherwise, in place, and points to calls whose arguments have changed.
# The tables are in docs/from_0_1.md, beside this script.
# Run it once: some new names are another thing's old name (weft_max), so a second run would rename those again.
use strict;
use warnings;
use File::Basename;

open(my $page, '<', dirname($0) . '/from_0_1.md') or die "from_0_1.md: $!\n";
my ($names, $arguments) = split /^## Arguments$/m, do { local $/; <$page> };
close $page;
my %name = map { /^\| `(weft_\w+)` \| `(weft_\w+)` \|/ ? ($1 => $2) : () } split /\n/, $names;

# The functions of an object whose type is in the table are renamed with it.
my $old = join '|', sort { length $b <=> length $a } keys %name;
my %changed = map { $_ => 1 } map { /^\| (?!0\.1)(.*?) \| / ? $1 =~ /\b(weft_\w+|\w+_DEFAULTS)/g : () } split /\n/, $arguments;
my $changed = join '|', sort { length $b <=> length $a } keys %changed;
my $verb = '_new|_run|_masked|_update|_swap|_step';
for my $path (@ARGV) {
    open(my $in, '<', $path) or die "$path: $!\n";
    local $/;
    my $text = <$in>;
    close $in;
    my $line = 0;
    for (split /\n/, $text) {
        $line++;
        print "$path:$line: the arguments of $1 have changed, see from_0_1.md\n" if /\b($changed)\b/;
    }
    (my $made = $text) =~ s/\b(?:($old)|($old)($verb))\b/defined $1 ? $name{$1} : exists $name{"$2$3"} ? $name{"$2$3"} : "$name{$2}$3"/ge;
    next if $made eq $text;
    open(my $out, '>', $path) or die "$path: $!\n";
    print $out $made;
    close $out or die "$path: $!\n";
    print "$path\n";
}
