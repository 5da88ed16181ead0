// Inputs that become a command or code (`@runs`): they require the scope `deploy` in addition to the operation's scope,
// since they run with the rights of the application (docs/decisions/rules.md §39).
import { getNamedType, isInputObjectType, type GraphQLInputObjectType, type GraphQLSchema } from 'graphql';
import type { Identity } from '../core/context';
import { problem } from '../core/errors';
import { hasDirective } from './directives';

/** Names from the input object down to the field, `['build', 'build_command']`. */
export type InputPath = readonly string[];

/** The inputs below an input type that are run. */
export function readRunningInputs(schema: GraphQLSchema, type: GraphQLInputObjectType): InputPath[] {
  return Object.values(type.getFields()).flatMap((field): InputPath[] => {
    if (hasDirective(field, 'runs')) return [[field.name]];
    const inner = getNamedType(field.type);
    if (!isInputObjectType(inner)) return [];
    return readRunningInputs(schema, inner).map((path) => [field.name, ...path]);
  });
}

/** @throws insufficient_scope if the input contains a command or code and the key lacks the scope `deploy` */
export function requireRunningInputs({ scopes }: Identity, paths: readonly InputPath[], input: unknown): void {
  if (scopes === null || scopes.includes('deploy')) return;
  const path = paths.find((one) => isGiven(one, input));
  if (!path) return;
  throw problem('insufficient_scope', `\`${path.join('.')}\` decides which code runs and needs the scope deploy.`, {
    required_scope: 'deploy',
    token_scopes: scopes,
  });
}

/** What stands at the path of an input; undefined where it, or what is around it, is not given. */
export function valueAt(path: InputPath, input: unknown): unknown {
  let value = input;
  for (const name of path) value = (value as Record<string, unknown> | null | undefined)?.[name];
  return value;
}

// `null` and `false` unset a command, so they need no scope.
function isGiven(path: InputPath, input: unknown): boolean {
  const value = valueAt(path, input);
  return value !== undefined && value !== null && value !== false;
}
