# grades.awk - writes the grades of a class: a table on standard output, grades.csv, grades.json and, for a CI, grades.xml.
# Each record has student, lesson, file, yes|no|none, the name of the hint, the verdict and seconds, separated by the byte 31. A student's
# first record has no lesson. -v dir=FOLDER -v lessons="01 02 ..".
function quoted(text) { gsub(/"/, "\"\"", text); return "\"" text "\"" }
function string(text) { gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); return "\"" text "\"" }
function escaped(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/"/, "\\&quot;", text); return text }
BEGIN { FS = "\037"; columns = split(lessons, column, " ") }
$2 == "" { student[++students] = $1; next }
{
    n++
    of[n] = $1; lesson[n] = $2; file[n] = $3; grade[n] = $4; hint[n] = $4 == "yes" ? "" : $5; verdict[n] = $6; seconds[n] = $7
    if ($4 != "none" || !(($1, $2) in cell)) cell[$1, $2] = $4 == "yes" ? "right" : $5
    right[$1] += $4 == "yes"; all_right += $4 == "yes"; answers += $4 != "none"
}
END {
    csv = dir "/grades.csv.new"; json = dir "/grades.json.new"; xml = dir "/grades.xml.new"
    printf "student" >csv
    printf "%-20s", ""
    for (k = 1; k <= columns; k++) { printf ",%s", column[k] >csv; printf "%6s", column[k] }
    print ",right" >csv
    print " right"
    for (s = 1; s <= students; s++) {
        name = student[s]
        printf "%s", quoted(name) >csv
        printf "%-20s", name
        for (k = 1; k <= columns; k++) {
            is = (name, column[k]) in cell ? cell[name, column[k]] : "-"
            printf ",%s", quoted(is) >csv
            printf "%6s", is == "-" ? "-" : is == "right" ? "right" : is == "wrong-name" ? "name?" : "wrong"
        }
        print "," right[name] + 0 >csv
        printf "%6d\n", right[name]
    }
    print "[" >json
    printf "<testsuite name=\"lessons\" tests=\"%d\" failures=\"%d\">\n", n, n - all_right >xml
    for (k = 1; k <= n; k++) {
        printf "%s{\"student\": %s, \"lesson\": %s, \"file\": %s, \"right\": %s, \"hint\": %s, \"verdict\": %s, \"seconds\": %s}", (k == 1 ? "" : ",\n"),
            string(of[k]), lesson[k] == "?" ? "null" : string(lesson[k]), string(file[k]), grade[k] == "yes" ? "true" : "false",
            grade[k] == "yes" ? "null" : string(hint[k]), string(verdict[k]), seconds[k] >json
        printf "<testcase classname=\"%s\" name=\"%s\" time=\"%s\">", escaped(of[k]), escaped(file[k]), seconds[k] >xml
        if (grade[k] != "yes") {
            printf "<failure type=\"%s\" message=\"%s\"/>", escaped(hint[k]), escaped(verdict[k]) >xml
            printf "%s/%s: %s\n", of[k], file[k], verdict[k]
        }
        print "</testcase>" >xml
    }
    print "\n]" >json
    print "</testsuite>" >xml
    if (close(csv) || close(json) || close(xml)) exit 1
    printf "grade: %d students, %d answers, %d right; %s/grades.csv, .json, .xml\n", students, answers, all_right, dir
}
