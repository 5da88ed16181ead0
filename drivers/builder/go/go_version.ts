// Selects the Go of a source: the Go of the host, if it is new enough, or can download the version that is required.
import { satisfies } from '../../toolchain/versions';
import { BuildError, type BuildPlan } from '../../builder';
import type { Tool } from '../../toolchain';
import type { BuildHost } from '../language_plan';

// https://go.dev/doc/toolchain
const FETCHES_OTHERS = '>=1.21';

interface ChosenGo {
  version: string;
  tools: Tool[];
  reasons: string[];
  /** null where it gets another version, whose standard library the build itself compiles. */
  library: BuildPlan['go'] | null;
}

/** @param stating texts of go.mod and go.work */
export async function chooseGo(stating: readonly string[], { facts, toolchains, ctx }: BuildHost): Promise<ChosenGo> {
  const needs = neededVersion(stating);
  const ours = facts.programs.go?.version ?? null;
  const isNew = (version: string): boolean => satisfies(version, `>=${needs}`) !== false;
  const reasonOf = (version: string): string[] =>
    isNew(version) ? [] : [`go.mod asks for Go ${needs}, which Go ${version} gets from the Go module proxy.`];
  const libraryOf = (version: string, program: string | null): ChosenGo['library'] =>
    isNew(version) ? { version, program } : null;
  if (ours !== null && (isNew(ours) || satisfies(ours, FETCHES_OTHERS) === true))
    return {
      version: ours,
      tools: [],
      reasons: reasonOf(ours),
      library: libraryOf(ours, facts.programs.go?.path ?? null),
    };
  const name = 'go';
  const packageName = toolchains.packageOf(name, null);
  const found = packageName === null ? [] : await toolchains.versions(name, packageName, ctx);
  if (packageName === null || found[0] === undefined)
    throw new BuildError(
      `The source needs Go ${needs} or newer, which is not installed on this platform. Ask the operator to install it.`,
    );
  const { version } = found[0];
  const why = ours === null ? 'the host has none' : `that of the host is ${ours}, and go.mod asks for ${needs}`;
  const reason = `Go ${version} comes from the Go module proxy: ${why}.`;
  const tools = [{ name, version, package: packageName } satisfies Tool];
  return { version, tools, reasons: [reason, ...reasonOf(version)], library: libraryOf(version, null) };
}

/** The highest that one of the files states. */
function neededVersion(stating: readonly string[]): string {
  const stated = stating.flatMap((text) =>
    [/^toolchain\s+go(\d+(?:\.\d+)*)/m, /^go\s+(\d+(?:\.\d+)*)/m].map((words) => words.exec(text)?.[1] ?? '1'),
  );
  return stated.reduce((before, one) => (satisfies(one, `>=${before}`) === true ? one : before), '1');
}
