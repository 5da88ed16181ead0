// What the OpenAPI document says of requests, read by a validator that knows nothing of ours.
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import type { Operation } from '../../../contract/operations';
import { memoize } from '../../../core/memoize';
import type { buildCore } from '../../../resolvers';
import { openapiDocument } from '../../../rest/openapi';
import type { OperationObject, Parameter, Ref, Schema } from '../../../rest/openapi/document';

interface DocumentedRequests {
  described(operation: Operation): OperationObject;
  fitsBody(operation: Operation, body: unknown): boolean;
  fitsPath(operation: Operation, name: string, text: string): boolean;
  /** The text of one argument of the query. Whole numbers and lists are read from it as a client would write them. */
  fitsQuery(operation: Operation, name: string, text: string): boolean;
}

const ID = 'openapi';

export function documentedRequests(core: ReturnType<typeof buildCore>): DocumentedRequests {
  const document = openapiDocument({
    ...{ table: core.table, schema: core.schema, transitional: core.transitional },
    ...{ baseUrl: 'http://127.0.0.1:8080', version: '0.0.0' },
  });
  const validator = memoize(() =>
    addFormats(new Ajv2020({ strict: false, validateSchema: false })).addSchema(document, ID),
  );
  const compiled = new Map<string, ValidateFunction>();
  const fits = (pointer: string[], value: unknown): boolean => {
    const fragment = pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')));
    const reference = `${ID}#/${fragment.join('/')}`;
    const check = compiled.get(reference) ?? validator().compile({ $ref: reference });
    compiled.set(reference, check);
    return check(value) as boolean;
  };
  const pointerOf = ({ path, method }: Operation): string[] => ['paths', path, method.toLowerCase()];
  const described = ({ path, method }: Operation): OperationObject =>
    document.paths[path]?.[method.toLowerCase()] as OperationObject;

  function parameterOf(
    operation: Operation,
    where: 'path' | 'query',
    name: string,
  ): { pointer: string[]; schema: Schema } {
    const list = described(operation).parameters ?? [];
    for (const [index, entry] of list.entries()) {
      const shared = (entry as Ref).$ref?.split('/').at(-1);
      const parameter = (shared ? document.components.parameters[shared] : entry) as Parameter;
      if (parameter.name !== name || parameter.in !== where) continue;
      const place = shared
        ? ['components', 'parameters', shared]
        : [...pointerOf(operation), 'parameters', String(index)];
      return { pointer: [...place, 'schema'], schema: parameter.schema };
    }
    throw new Error(`${operation.id} documents no argument ${name}`);
  }

  return {
    described,
    fitsBody: (operation, body) =>
      fits([...pointerOf(operation), 'requestBody', 'content', 'application/json', 'schema'], body),
    fitsPath: (operation, name, text) => fits(parameterOf(operation, 'path', name).pointer, text),
    fitsQuery(operation, name, text) {
      const { pointer, schema } = parameterOf(operation, 'query', name);
      if (schema.type === 'array') return fits(pointer, text === '' ? [] : text.split(','));
      const isNumber = schema.type === 'integer' || schema.type === 'number';
      // A page that is too large is cut (docs/contract/resources.md §0.3).
      if (name === 'limit' && Number(text) > (schema.maximum ?? Infinity)) return true;
      return fits(pointer, isNumber && /^-?\d+$/.test(text) ? Number(text) : text);
    },
  };
}
