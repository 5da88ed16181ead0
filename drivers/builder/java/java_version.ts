// Selects the JDK of a source among those of the host.
import type { JavaFound } from '../../../core/catalog/host_facts';
import { BuildError } from '../../builder';
import type { BuildHost } from '../language_plan';
import type { SourceFiles } from '../source_files';

interface ChosenJava {
  java: JavaFound;
  /** Why not that of the host's `java`: a sentence for the log; null where it is. */
  reason: string | null;
}

const NUMBER = String.raw`["']?\s*(?:1\.)?(\d{1,2})`;
/** Files that state the version, and how. The first that does counts. */
const statements: [file: string, ...patterns: RegExp[]][] = [
  ['system.properties', new RegExp(String.raw`^\s*java\.runtime\.version\s*[=:]\s*${NUMBER}`, 'm')],
  ['.java-version', new RegExp(`^[a-z-]*${NUMBER}`)],
  ['.sdkmanrc', new RegExp(String.raw`^\s*java\s*=${NUMBER}`, 'm')],
  [
    'pom.xml',
    new RegExp(String.raw`<(?:java\.version|maven\.compiler\.release|release)>\s*${NUMBER}`),
    new RegExp(String.raw`<(?:maven\.compiler\.(?:target|source)|target)>\s*${NUMBER}`),
  ],
  ...['build.gradle', 'build.gradle.kts'].map((name): [string, ...RegExp[]] => [
    name,
    new RegExp(String.raw`JavaLanguageVersion\.of\(${NUMBER}`),
    new RegExp(String.raw`\bjvmToolchain\(${NUMBER}`),
    new RegExp(String.raw`\b(?:source|target)Compatibility\s*=?\s*(?:JavaVersion\.(?:VERSION_)?(?:1_)?)?${NUMBER}`),
  ]),
];

/**
 * The oldest JDK of the host that is new enough; its `java` where the source states no version.
 * @throws BuildError where none is
 */
export async function chooseJava(files: SourceFiles, { facts }: BuildHost): Promise<ChosenJava> {
  const installed = facts.javas ?? [];
  const stated = await statedVersion(files);
  const usual = installed.find(({ isDefault }) => isDefault) ?? installed[0];
  if (stated === null && usual !== undefined) return { java: usual, reason: null };
  const needed = stated?.major ?? 17;
  const fitting = installed.filter(({ major }) => major >= needed).sort((a, b) => a.major - b.major)[0];
  const java = usual !== undefined && usual.major === fitting?.major ? usual : fitting;
  if (java !== undefined)
    return {
      java,
      reason: java.isDefault ? null : `${stated!.file} asks for Java ${needed}: Java ${java.major} is used.`,
    };
  const there = installed.length === 0 ? 'none' : `Java ${installed.map(({ major }) => major).join(', ')}`;
  throw new BuildError(
    `${stated?.file ?? 'The source'} asks for Java ${needed}, and this host has ${there}. The operator can ` +
      `install it with \`apt-get install openjdk-${needed}-jdk-headless\`; a deployment a minute later finds it. Or ` +
      'add a Dockerfile.',
  );
}

async function statedVersion(files: SourceFiles): Promise<{ file: string; major: number } | null> {
  for (const [file, ...patterns] of statements) {
    const text = await files.read(file);
    const found = text === null ? undefined : patterns.map((one) => one.exec(text)?.[1]).find(Boolean);
    if (found !== undefined) return { file, major: Number(found) };
  }
  return null;
}
