// Types of the SDL as the generic pages need them: fields of answers, fields of forms, values of enums.
import { Kind, valueFromASTUntyped } from 'graphql';

/** Name of a directive -> the arguments of each of its uses. */
export function directivesOf(node) {
  const found = {};
  for (const { name, arguments: given = [] } of node.directives ?? [])
    (found[name.value] ??= []).push(
      Object.fromEntries(given.map((one) => [one.name.value, valueFromASTUntyped(one.value)])),
    );
  return found;
}

/** The description, as one paragraph; undefined where there is none. */
export function textOf({ description }) {
  return description?.value.replace(/\s+/g, ' ').trim() || undefined;
}

export function typeOf(node) {
  const isRequired = node.kind === Kind.NON_NULL_TYPE;
  const bare = isRequired ? node.type : node;
  if (bare.kind === Kind.NAMED_TYPE) return { type: bare.name.value, required: isRequired };
  return { type: typeOf(bare.type).type, required: isRequired, list: true };
}

/** An argument or a field of an input. `kind` of what is no scalar is completed by describeTypes. */
export function valueOf(node) {
  const { spec: [spec = {}] = [] } = directivesOf(node);
  const { example, default: usual, sorts, min, max, minLength, maxLength, maxBytes, maxItems, pattern, format } = spec;
  const given = node.defaultValue ? valueFromASTUntyped(node.defaultValue) : undefined;
  const { type, required, list } = typeOf(node.type);
  return dropEmpty({
    name: node.name.value,
    type,
    kind: /Input$/.test(type) ? 'input' : 'scalar',
    list,
    required: required && given === undefined,
    description: textOf(node),
    example: example === undefined ? undefined : parsed(example),
    default: usual === undefined ? given : parsed(usual),
    notNull: spec.notNull || undefined,
    ...{ sorts, min, max, minLength, maxLength: maxLength ?? maxBytes, maxItems, pattern, format },
  });
}

/** Defaults and examples are JSON, or a word. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** What the operations answer and take, and all that it leads to. */
export function describeTypes(definitions, operations) {
  const byName = new Map(definitions.filter(({ name }) => name).map((one) => [one.name.value, one]));
  const [types, inputs, enums] = [{}, {}, {}];
  const describe = (name) => {
    const definition = byName.get(name);
    if (!definition || types[name] || inputs[name] || enums[name]) return;
    if (definition.kind === Kind.ENUM_TYPE_DEFINITION)
      enums[name] = definition.values.filter(isCurrent).map(enumValueOf);
    if (definition.kind === Kind.INPUT_OBJECT_TYPE_DEFINITION) describeInput(name, definition);
    if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION) return;
    types[name] = definition.fields.filter(isShown).map(fieldOf);
    for (const field of types[name]) describe(field.type);
    for (const field of types[name]) field.kind = kindOf(field.type);
  };
  const describeInput = (name, definition) => {
    inputs[name] = {
      rules: (directivesOf(definition).rule ?? []).flatMap(ruleText),
      fields: definition.fields.filter(isCurrent).map(valueOf),
    };
    complete(inputs[name].fields);
  };
  const complete = (values) => {
    for (const value of values) describe(value.type);
    for (const value of values) value.kind = kindOf(value.type);
  };
  const kindOf = (name) => (enums[name] ? 'enum' : inputs[name] ? 'input' : types[name] ? 'object' : 'scalar');
  for (const { answer, args } of Object.values(operations)) {
    describe(answer);
    complete(args);
  }
  return { types, inputs, enums };
}

/** Relations lead to other kinds, which have pages of their own. */
function isShown(field) {
  return !directivesOf(field).graphqlOnly && !field.arguments?.length && isCurrent(field);
}

function isCurrent(node) {
  return !directivesOf(node).deprecated;
}

function fieldOf(field) {
  const { type, list } = typeOf(field.type);
  return dropEmpty({
    name: field.name.value,
    type,
    list,
    description: textOf(field),
    secret: directivesOf(field).secret ? true : undefined,
  });
}

const enumValueOf = (node) => dropEmpty({ value: node.name.value, description: textOf(node) });

const quoted = (names) => names.map((name) => `\`${name}\``).join(', ');

function ruleText({ exactlyOne, atMostOne, notEmpty, field, needs, value }) {
  if (exactlyOne) return [`Exactly one of ${quoted(exactlyOne)} is needed.`];
  if (atMostOne) return [`At most one of ${quoted(atMostOne)} may be given.`];
  if (field && value) return [`\`${field}\` is for the \`${needs}\` \`${value}\`.`];
  if (field) return [`\`${field}\` needs \`${needs}\`.`];
  return notEmpty ? [] : [];
}

function dropEmpty(object) {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== false));
}
