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
for jar in $1; do
  [ -f "$jar" ] || continue
  case $jar in
    */quarkus-run.jar)
      found=" $jar"
      break
      ;;
    *-sources.jar | *-javadoc.jar | *-tests.jar | *-plain.jar | */original-*.jar) continue ;;
  esac
  if starts "$jar"; then
    found="$found $jar"
  fi
done
case $found in
  ' '*' '*)
    first=${found# }
    echo "Several jars start by themselves:$found. Add a Procfile with a line like \`web: java -jar ${first%% *}\`." >&2
    exit 1
    ;;
  '')
    echo "The build left no jar that starts by itself (with Main-Class in its manifest) in $1. Let the build make one, \
for example with the plugin of Spring Boot, Shade or Shadow, or add a Procfile." >&2
    exit 1
    ;;
esac
mkdir -p .platform && printf '%s\n' "${found# }" > .platform/jar && echo "The program is ${found# }."
