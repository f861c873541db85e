# SPDX-License-Identifier: Apache-2.0
#
# clients.awk OURS THEIRS - compares two lists of verdicts of clients.sh, lines
# of client, test, verdict. Of a test's verdicts the worst counts, but any is
# more than "begun". What is not the same is named; the status is 1 if a test
# does worse on the first library.
BEGIN {
	FS = "\t"
	rank["begun"] = rank["hang"] = 1
	rank["fail"] = 2
	rank["skip"] = 3
	rank["pass"] = 4
}
{
	test = $1 FS $2
	side = FILENAME == ARGV[1] ? 1 : 2
	last = verdict[side, test]
	if (last == "" || last == "begun" || rank[$3] < rank[last] && $3 != "begun")
		verdict[side, test] = $3
	if (!(test in seen)) {
		seen[test] = 1
		tests[++n] = test
		if (!($1 in all))
			clients[++m] = $1
		all[$1]++
	}
}
function name(v) { return v == "" ? "not run" : v == "begun" ? "never ended" : v }
END {
	for (i = 1; i <= n; i++) {
		split(tests[i], part, FS)
		a = verdict[1, tests[i]]
		b = verdict[2, tests[i]]
		what = rank[a] == rank[b] ? "same" : rank[a] > rank[b] ? "better" : "worse"
		count[part[1], what]++
		count[what]++
		if (a == "pass")
			count[part[1], "passed"]++
		if (b == "pass")
			count[part[1], "theirs"]++
		if (what != "same")
			printf "%-7s %s: %s, %s there\n", what, part[2], name(a), name(b)
	}
	printf "%-16s %6s %6s %6s %6s %6s %6s\n", "client", "tests", "pass", "there", "same", "better", "worse"
	for (i = 1; i <= m; i++) {
		c = clients[i]
		printf "%-16s %6d %6d %6d %6d %6d %6d\n", c, all[c], count[c, "passed"],
			count[c, "theirs"], count[c, "same"], count[c, "better"], count[c, "worse"]
	}
	printf "%d tests: %d the same verdict, %d better, %d worse\n", n,
		count["same"], count["better"], count["worse"]
	exit count["worse"] > 0 || n == 0
}
