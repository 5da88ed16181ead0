// The components of the document under work. A component is made when something first refers to it, so none is unused.
import type { GraphQLSchema } from 'graphql';
import type { OperationTable } from '../../core/operations';
import type { Components, Ref } from './document';

export interface Book {
  schema: GraphQLSchema;
  table: OperationTable;
  components: Components;
  /** Refers to a component, made once. */
  use<Kind extends keyof Components>(kind: Kind, name: string, make: () => Components[Kind][string]): Ref;
}

export function openBook(schema: GraphQLSchema, table: OperationTable): Book {
  const components: Components = { schemas: {}, parameters: {}, headers: {}, responses: {}, securitySchemes: {} };
  const begun = new Set<string>();
  return {
    schema,
    table,
    components,
    use(kind, name, make) {
      const $ref = `#/components/${kind}/${name}`;
      if (begun.has($ref)) return { $ref };
      // Types refer to each other in circles: the name counts as made before its content is.
      begun.add($ref);
      components[kind][name] = make();
      return { $ref };
    },
  };
}
