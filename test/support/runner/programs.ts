// Programs that tests call, and that a machine need not have (core/catalog/optional_programs.json names their
// packages).
import { hasProgram } from './has_program';

/**
 * `test` and `describe` for what needs programs. Where one is missing they skip by name, with the reason in the name;
 * in CI, which installs all of them, the tests run and fail.
 */
export function needs(...programs: string[]): { test: jest.It; describe: jest.Describe } {
  const missing = programs.filter((name) => !hasProgram(name));
  if (missing.length === 0 || process.env.CI) return { test, describe };
  const reason = ` (needs: ${missing.join(', ')})`;
  return {
    test: named(test.skip, reason) as jest.It,
    describe: named(describe.skip, reason) as jest.Describe,
  };
}

/** As `needs`, for all tests of a file: called before the first of them. Their hooks do not run then either. */
export function fileNeeds(...programs: string[]): void {
  const { test: needing, describe: group } = needs(...programs);
  Object.assign(globalThis, { test: needing, it: needing, describe: group });
}

type Skipping = ((name: string, ...rest: never[]) => void) & { each: (...table: never[]) => Skipping };

/** `test.skip` that says why in the name of each test. */
export function named(skip: unknown, reason: string): unknown {
  const call = skip as Skipping;
  const each = (...table: never[]) => named(call.each(...table), reason);
  return Object.assign((name: string, ...rest: never[]) => call(`${name}${reason}`, ...rest), { each, skip: call });
}

export const isRoot = process.getuid?.() === 0;
/** `test` for what only root may do. */
export const testOfRoot = (): jest.It => (isRoot ? test : named(test.skip, ' (needs: root)')) as jest.It;
