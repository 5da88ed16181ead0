// Java and other languages of the JVM, by Maven or Gradle: their wrappers, or the programs of the host.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { shellWord } from '../language_plan';
import type { BuildHost, DetectLanguage, LanguagePlan } from '../language_plan';
import { isCalled, requireLanguage } from '../host_language';
import { LISTEN } from '../listen';
import type { SourceFiles } from '../source_files';
import { CALLS, startsFinished } from '../unbuilt_source';
import { chooseJava } from './java_version';

interface BuildTool {
  /** The file that it reads. */
  file: string;
  text: string;
  program: 'maven' | 'gradle';
  wrapper: string;
  /** Where it puts jars. */
  output: string;
  /** Where Quarkus puts what it starts. */
  quarkus: string;
}

const SOURCES = ['src/main/java', 'src/main/kotlin', 'src/main/scala', 'src/main/groovy', 'src/main/webapp'];
const MAVEN = { wrapper: 'mvnw', output: 'target', quarkus: 'target/quarkus-app' };
const GRADLE = { wrapper: 'gradlew', output: 'build/libs', quarkus: 'build/quarkus-app' };
/** Maven and Gradle look for caches in the home directory of the account, which is not $HOME. */
const commands: Record<BuildTool['program'], (program: string, tool: BuildTool) => string> = {
  maven: (program) => `${program} -B -ntp -DskipTests -Dmaven.repo.local="$HOME/.m2/repository" clean package`,
  gradle: (program, { text }) =>
    `${program} --no-daemon --gradle-user-home "$HOME/.gradle" ${STAGE.test(text) ? 'stage' : 'clean assemble'}`,
};
/** The task that Heroku builds with, which leaves what a Procfile names (devcenter.heroku.com). */
const STAGE = /\btask\s*\(?\s*["']?stage\b|\.(?:register|create)\w*(?:<\w+>)?\(\s*["']stage["']/;

export const detectJava: DetectLanguage = async (files, host) => {
  const tool = await findBuildTool(files);
  if (tool === null || !(await isApplication(files, tool, host))) return null;
  const hasWrapper = await files.has(tool.wrapper);
  requireLanguage(host, {
    name: 'Java',
    file: tool.file,
    programs: { javac: 'default-jdk-headless', ...(!hasWrapper && { [tool.program]: tool.program }) },
    isInterpreted: true,
  });
  const { java, reason } = await chooseJava(files, host);
  const title = tool.program === 'maven' ? 'Maven' : 'Gradle';
  const program = hasWrapper ? `sh ${tool.wrapper}` : host.facts.programs[tool.program]!.path;
  const isStated = host.commands.web !== undefined;
  const plan: LanguagePlan = {
    kind: 'java',
    summary: [`Java ${java.major}`, hasWrapper ? `${title} wrapper` : title],
    reasons: reason === null ? [] : [reason],
    tools: [],
    steps: [
      { name: title, command: commands[tool.program](program, tool) },
      // In the PATH of processes, since commands call `java`.
      { name: 'Java', command: `mkdir -p .platform && ln -sfn ${shellWord(java.home)} .platform/java` },
      ...(isStated ? [] : [{ name: 'Find the program', command: findCommand(tool) }]),
    ],
    site: [],
    prune: null,
    processes: { web: startCommand(tool) },
    env: { JAVA_HOME: java.home },
    programs: ['.platform/java/bin'],
  };
  return plan;
};

async function findBuildTool(files: SourceFiles): Promise<BuildTool | null> {
  const pom = await files.read('pom.xml');
  if (pom !== null) return { file: 'pom.xml', text: pom, program: 'maven', ...MAVEN };
  for (const file of ['build.gradle.kts', 'build.gradle', 'settings.gradle.kts', 'settings.gradle']) {
    const text = await files.read(file);
    if (text !== null) return { file, text, program: 'gradle', ...GRADLE };
  }
  return null;
}

/** Its sources are there, or it has modules, or a stated command needs what it builds, and was not built elsewhere. */
async function isApplication(files: SourceFiles, { text, file }: BuildTool, host: BuildHost): Promise<boolean> {
  if (await startsFinished(files, Object.values(host.commands))) return false;
  for (const directory of SOURCES) if (await files.isDirectory(directory)) return true;
  const hasModules = file === 'pom.xml' ? /<modules>/.test(text) : /\binclude\b/.test(text);
  return hasModules || isCalled(host, CALLS.Java);
}

/** Of modules, those of the next level are searched, too. */
function findCommand({ output, quarkus }: BuildTool): string {
  const places = [`${quarkus}/quarkus-run.jar`, `${output}/*.[jw]ar`].flatMap((place) => [place, `*/${place}`]);
  const script = readFileSync(path.join(__dirname, 'find_jar.sh'), 'utf8').trimEnd();
  return `set -- ${shellWord(places.join(' '))}\n${script}`;
}

/** The JVM takes a quarter of the memory for its heap by itself, which is meant for machines that it shares. */
function startCommand({ text }: BuildTool): string {
  const settings = [
    ...(/spring-boot|springframework\.boot/.test(text) ? ['-Dserver.port=$PORT'] : []),
    ...(/quarkus/.test(text) ? [`-Dquarkus.http.host=${LISTEN}`, '-Dquarkus.http.port=$PORT'] : []),
    ...(/micronaut/.test(text) ? ['-Dmicronaut.server.port=$PORT'] : []),
  ];
  return ['java -XX:MaxRAMPercentage=70', ...settings, '$JAVA_OPTS -jar "$(cat .platform/jar)"'].join(' ');
}
