// What the command line has to know of each operation, made from an OpenAPI 3.1 document.

/** @returns {{ version: string, operations: object[] }} in the order of groups and operations in the document */
export function operationTable(document) {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => operation.operationId)
      .map(([method, operation]) => describeOperation(document, method.toUpperCase(), path, operation)),
  );
  const groups = document.tags.map(({ name }) => name);
  operations.sort((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group) || a.id.localeCompare(b.id));
  return { operations };
}

function describeOperation(document, method, path, operation) {
  const parameters = (operation.parameters ?? []).map((parameter) => resolve(document, parameter));
  const header = (name) => parameters.some((one) => one.in === 'header' && one.name === name) || undefined;
  const inside = (place) => parameters.filter((one) => one.in === place).map((one) => parameterOf(document, one));
  const success = Object.entries(operation.responses).find(([status]) => status.startsWith('2'));
  const content = success?.[1].content ?? {};
  return dropEmpty({
    id: operation.operationId,
    method,
    path,
    group: operation.tags[0],
    summary: operation.summary,
    description: textOf(operation.description, operation.summary),
    scope: operation['x-required-scope'],
    extension: operation['x-extension'],
    path_parameters: inside('path'),
    query: inside('query'),
    body: bodyOf(document, operation),
    body_required: operation.requestBody?.required || undefined,
    project: header('X-Svc-Project'),
    idempotent: header('Idempotency-Key'),
    wait: header('Prefer'),
    dry_run: header('Dry-Run'),
    if_match: header('If-Match'),
    stream: 'text/event-stream' in content || undefined,
    open: operation.security?.length === 0 || undefined,
  });
}

/** Without the paragraph on access, which the scope says, and where it says more than the summary. */
function textOf(description, summary) {
  const text = (description ?? '').replace(/\n\n\*\*Access:\*\*[^]*$/, '').replace(/\s+/g, ' ');
  return text.replace(/\.$/, '') === summary ? undefined : text;
}

function bodyOf(document, operation) {
  const schema = operation.requestBody?.content['application/json']?.schema;
  if (!schema) return undefined;
  const { properties = {}, required = [] } = resolve(document, schema);
  return Object.entries(properties).map(([name, property]) =>
    dropEmpty({ ...valueOf(document, property), name, required: required.includes(name) || undefined }),
  );
}

function parameterOf(document, parameter) {
  return dropEmpty({
    ...valueOf(document, { ...parameter.schema, description: parameter.description }),
    name: parameter.name,
    required: (parameter.in !== 'path' && parameter.required) || undefined,
    example: parameter.in === 'path' ? parameter.example : undefined,
  });
}

/** A type of JSON, with what bounds it. */
function valueOf(document, given) {
  const description = given.description;
  const options = (given.anyOf ?? [given]).map((one) => ({ ...given, ...resolve(document, one) }));
  const found = options.find((one) => one.type !== 'null') ?? {};
  const types = [found.type ?? 'object'].flat();
  const items = found.items && resolve(document, found.items);
  return {
    type: types.find((type) => type !== 'null'),
    nullable: options.some((one) => [one.type].flat().includes('null')) || undefined,
    items: items && (items.type ?? 'object'),
    enum: found.enum ?? items?.enum,
    min: found.minimum,
    max: found.maximum > 2 ** 40 ? undefined : found.maximum,
    default: found.default,
    format: found.format === 'int32' || found.format === 'int64' ? undefined : found.format,
    description: (description ?? found.description)?.replace(/\s+/g, ' '),
  };
}

function resolve(document, value) {
  if (!value.$ref) return value;
  const found = value.$ref
    .slice(2)
    .split('/')
    .reduce((part, name) => part[name], document);
  const { $ref, ...beside } = value;
  return { ...found, ...beside };
}

function dropEmpty(object) {
  return Object.fromEntries(
    Object.entries(object).filter(([, value]) => value !== undefined && !(Array.isArray(value) && !value.length)),
  );
}
