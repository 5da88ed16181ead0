// Parts of a plan, one for each language, become one.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { BuildPlan } from '../builder';
import { shellWord, type LanguagePlan, type Step } from './language_plan';
import { developmentNote } from './python/python_server';

const emptyPlan: LanguagePlan = {
  kind: 'procfile',
  summary: [],
  tools: [],
  steps: [],
  site: [],
  prune: null,
  processes: {},
  env: {},
  programs: [],
};

/** Of the same field of two languages the later one counts. */
export function mergePlans(parts: LanguagePlan[]): LanguagePlan {
  return parts.reduce(
    (before, part) => ({
      kind: part.kind,
      summary: [...before.summary, ...part.summary],
      tools: [...before.tools, ...part.tools],
      prune: part.prune ?? before.prune,
      steps: part.isFirst ? [...part.steps, ...before.steps] : [...before.steps, ...part.steps],
      site: [...before.site, ...part.site],
      processes: { ...before.processes, ...part.processes },
      missing: [before.missing, part.missing].filter(Boolean).join(' ') || null,
      env: { ...before.env, ...part.env },
      programs: [...before.programs, ...part.programs],
      go: part.go ?? before.go,
      reasons: [...(before.reasons ?? []), ...(part.reasons ?? [])],
      notes: [...(before.notes ?? []), ...(part.notes ?? [])],
      siteDirectories: [...(before.siteDirectories ?? []), ...(part.siteDirectories ?? [])],
    }),
    emptyPlan,
  );
}

/** Adds the step that removes development packages, and the notes about commands. */
export function toBuildPlan(found: LanguagePlan, releaseCommand: string | null = null): BuildPlan {
  const { kind, summary, tools, steps, site, prune, processes, missing, env, programs, go } = found;
  const commands = [...Object.values(processes), ...(releaseCommand === null ? [] : [releaseCommand])];
  const notes = [...(found.notes ?? []), ...commands.map(developmentNote).filter((note) => note !== null)];
  return {
    kind,
    summary: summary.join(', '),
    ...(found.reasons?.length && { reasons: found.reasons }),
    ...(notes.length > 0 && { notes }),
    tools: tools.filter(({ name }, i) => tools.findIndex((other) => other.name === name) === i),
    ...(go && { go }),
    steps: [...steps, ...site, ...(prune === null ? [] : [pruneStep(prune, commands)])],
    programs,
    processes,
    ...(missing && processes.web === undefined && { missing }),
    release_command: releaseCommand,
    env,
  };
}

/** Failure to prune does not fail a successful build. */
function pruneStep(command: string, commands: string[]): Step {
  const check = readFileSync(path.join(__dirname, 'development_check.js'), 'utf8').trimEnd();
  return {
    name: 'Remove development packages',
    command: [
      `node --input-type=commonjs - ${shellWord(JSON.stringify(commands))} <<'END_OF_CHECK' || exit 0`,
      check,
      'END_OF_CHECK',
      `${command} || echo 'The development packages could not be removed, so they stay.'`,
    ].join('\n'),
  };
}
