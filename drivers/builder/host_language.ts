// Languages that the host brings: nothing of them is downloaded, so what is missing is named with its packages.
import type { ProgramName } from '../../core/catalog/host_facts';
import { BuildError } from '../builder';
import type { BuildHost } from './language_plan';

interface HostLanguage {
  name: string;
  /** The file that it was recognised by. */
  file: string;
  programs: Partial<Record<ProgramName, string>>;
  /** Whether the release needs its programs, too. */
  isInterpreted: boolean;
}

/**
 * @param language its programs, each with the package of Debian that has it
 * @throws BuildError where the host lacks some, or the release runs in a pod, which has only what is downloaded
 */
export function requireLanguage({ facts, isPortable }: BuildHost, language: HostLanguage): void {
  const { name, file, programs, isInterpreted } = language;
  const what = `The source is a program in ${name} (${file})`;
  if (isPortable && isInterpreted)
    throw new BuildError(
      `${what}. On a cluster, releases with ${name} are built from a Dockerfile alone: add one that builds and ` +
        'starts the program, and set build.builder to `dockerfile`.',
    );
  const missing = Object.entries(programs).filter(([program]) => facts.programs[program as ProgramName] === undefined);
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map(([, one]) => one))].join(' ');
  throw new BuildError(
    `${what}, and this host lacks what builds and runs it. The operator can install it with ` +
      `\`apt-get install ${packages}\`; a deployment a minute later finds it. Or add a Dockerfile.`,
  );
}

/** Whether one of the stated commands calls a program of the language. */
export function isCalled({ commands }: BuildHost, calls: RegExp): boolean {
  return Object.values(commands).some((command) => calls.test(command));
}
