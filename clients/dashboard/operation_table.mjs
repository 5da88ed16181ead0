// What the pages know of the REST operations behind root fields, for "as API call": made of the SDL by the build.
import { Kind, parse } from 'graphql';

/** Field of Query or Mutation -> its REST operation: `{method, path}`. */
export function operationTable(sdl) {
  const table = {};
  for (const definition of parse(sdl).definitions) {
    if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION || !/^(Query|Mutation)$/.test(definition.name.value)) continue;
    for (const field of definition.fields ?? []) {
      const rest = field.directives?.find(({ name }) => name.value === 'rest');
      if (!rest) continue;
      const given = Object.fromEntries(rest.arguments.map(({ name, value }) => [name.value, value.value]));
      table[field.name.value] = [given.method ?? 'GET', given.path];
    }
  }
  return table;
}
