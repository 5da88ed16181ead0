// Validation of one root field's arguments, compiled once; both faces use it.
import { isInputObjectType, getNullableType, type GraphQLSchema } from 'graphql';
import { invalidQuery, validationFailed, type FieldError } from '../core/errors';
import type { RootField } from './operations';
import { compileArguments, compileInput, type Validated } from './validation';

/** Takes raw argument values, returns them in normal form. @throws invalid_query_parameter, validation_failed */
export type FieldValidator = (args: Record<string, unknown>) => Record<string, unknown>;

const PROJECT_ARGUMENT = 'project_id';

/** Compiles the validator of a root field: scalars of a query are query parameters, everything else are fields. */
export function compileField(schema: GraphQLSchema, field: RootField): FieldValidator {
  const scalars = field.definition.args.filter((argument) => !isInputObjectType(getNullableType(argument.type)));
  const inPath = new Set(field.operations.flatMap((operation) => operation.params.map((param) => param.argument)));
  // They name what the call is about: a malformed id is answered like an unknown one (docs/contract/resources.md §0.2).
  const subjects = new Set([...inPath, PROJECT_ARGUMENT]);
  const checkScalars = compileArguments(schema, field.name, scalars, subjects);
  const checkBody = field.body ? compileInput(schema, field.body.type) : null;
  return (args) => {
    const { value, errors } = checkScalars(args);
    requireValidQuery(field, inPath, errors);
    const body = checkBody && field.body ? bodyOf(checkBody, args[field.body.argument]) : null;
    const all = [...errors, ...(body?.errors ?? [])];
    if (all.length) throw validationFailed(all);
    return body && field.body ? { ...value, [field.body.argument]: body.value } : value;
  };
}

function requireValidQuery(field: RootField, inPath: Set<string>, errors: FieldError[]): void {
  if (field.kind !== 'query') return;
  const wrong = errors.find((error) => !inPath.has(error.field.split('.')[0] as string));
  if (wrong) throw invalidQuery(wrong.field, `${wrong.field} ${wrong.detail}.`);
}

function bodyOf(check: (value: Record<string, unknown>) => Validated, input: unknown): Validated {
  return check((input ?? {}) as Record<string, unknown>);
}
