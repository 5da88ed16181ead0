// Rules for Dockerfiles that cannot be built, reported with line numbers before the build.
import { BuildError } from '../../builder';
import { optionsOf, type Instruction } from './dockerfile_text';

const INSTRUCTIONS = new Set([
  ...['ADD', 'ARG', 'CMD', 'COPY', 'ENTRYPOINT', 'ENV', 'EXPOSE', 'FROM', 'HEALTHCHECK', 'LABEL', 'MAINTAINER'],
  ...['ONBUILD', 'RUN', 'SHELL', 'STOPSIGNAL', 'USER', 'VOLUME', 'WORKDIR'],
]);

/** Supported options. */
const OPTIONS: Record<string, string[]> = {
  ADD: ['chown', 'chmod', 'link'],
  COPY: ['chown', 'chmod', 'from', 'link'],
  FROM: ['platform'],
  HEALTHCHECK: ['interval', 'timeout', 'start-period', 'retries'],
  RUN: ['mount', 'network'],
};
const MOUNTS = ['bind', 'cache', 'tmpfs', 'secret'];

/** @param file its name in messages. @throws BuildError */
export function requireBuildable(instructions: readonly Instruction[], file: string): void {
  if (!instructions.some(({ name }) => name === 'FROM'))
    throw new BuildError(`${file} has no FROM. Begin it with the base image, for example FROM debian:12.`);
  let hasBegun = false;
  for (const instruction of instructions) {
    hasBegun ||= instruction.name === 'FROM';
    const obstacle = obstacleOf(instruction, hasBegun);
    if (obstacle !== null) throw new BuildError(`Line ${instruction.line} of ${file}: ${obstacle}`);
  }
}

function obstacleOf({ name, rest }: Instruction, hasBegun: boolean): string | null {
  if (!INSTRUCTIONS.has(name)) return `${name.slice(0, 40)} is not an instruction of Dockerfiles.`;
  if (!hasBegun && name !== 'ARG') return `${name} stands before the first FROM, where only ARG may stand.`;
  if (rest === '') return `${name} has no arguments.`;
  if ((name === 'ENV' || name === 'LABEL') && !/[=\s]/.test(rest)) return `${name} has a name and no value.`;
  return unknownOption(name, rest);
}

function unknownOption(name: string, rest: string): string | null {
  const known = OPTIONS[name];
  if (!known) return null;
  for (const option of optionsOf(rest).options) {
    const [, key = '', value = ''] = /^--([a-z-]+)=?(.*)$/.exec(option) ?? [];
    if (!known.includes(key)) return `builds of this platform do not know the option --${key} of ${name}.`;
    const type = key === 'mount' ? (/(?:^|,)type=([^,]*)/.exec(value)?.[1] ?? 'bind') : 'bind';
    if (type === 'ssh') return 'builds have no SSH agent for --mount=type=ssh. Use a secret: --mount=type=secret.';
    if (!MOUNTS.includes(type)) return `there is no --mount of the type ${type}.`;
  }
  return null;
}
