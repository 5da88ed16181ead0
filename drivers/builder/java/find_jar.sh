# Writes the path of the jar or war that starts by itself to .platform/jar.
# $1: patterns of their places, relative to the root directory.
starts() {
  folder=$(mktemp -d) || return 1
  file=$PWD/$1
  (cd "$folder" && "$JAVA_HOME/bin/jar" xf "$file" META-INF/MANIFEST.MF) &&
    grep -q '^Main-Class:' "$folder/META-INF/MANIFEST.MF"
  code=$?
  rm -rf "$folder"
  return $code
}
found=
first=
count=0
for jar in $1; do
  [ -f "$jar" ] || continue
  case $jar in
    */quarkus-run.jar)
      first=$jar
      count=1
      break
      ;;
    *-sources.jar | *-javadoc.jar | *-tests.jar | *-plain.jar | */original-*.jar) continue ;;
  esac
  if starts "$jar"; then
    first=${first:-$jar}
    count=$((count + 1))
    found="$found $jar"
  fi
done
case $count in
  0)
    echo "The build left no jar that starts by itself (with Main-Class in its manifest) in $1. Let the build make one, \
for example with the plugin of Spring Boot, Shade or Shadow, or add a Procfile." >&2
    exit 1
    ;;
  1) ;;
  *)
    echo "Several jars start by themselves:$found. Add a Procfile with a line like \`web: java -jar $first\`." >&2
    exit 1
    ;;
esac
mkdir -p .platform && printf '%s\n' "$first" > .platform/jar && echo "The program is $first."
