// The fields of a form, by the types of the SDL.
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import type { EnumValue, Value } from '../../api/resources/table';
import { Choices } from './choices';
import { fieldsOf, isSecret, newEntry, type Draft, type Drafts } from './draft';
import { problemAt, type FieldProps } from './field_props';
import { Prose } from './prose';
import { useSuggestions } from './suggestions';
import { words } from './words';

export function AnyField(props: FieldProps) {
  const { field, table } = props;
  if (field.list) return table.enums[field.type] ? <Choices {...props} /> : <ListField {...props} />;
  if (field.kind === 'input') return <ObjectField {...props} />;
  if (field.kind === 'enum' || field.type === 'Boolean' || field.sorts) return <SelectField {...props} />;
  return <TextField {...props} />;
}

interface FieldsProps extends Omit<FieldProps, 'field' | 'draft' | 'changed'> {
  fields: readonly Value[];
  drafts: Drafts;
  changed(drafts: Drafts): void;
}

/** All fields of an input. `path` is that of the input, empty for the body. */
export function Fields({ fields, drafts, path, changed, ...rest }: FieldsProps) {
  return (
    <>
      {fields.map((field) => (
        <AnyField
          key={field.name}
          {...rest}
          field={field}
          path={path ? `${path}.${field.name}` : field.name}
          draft={drafts[field.name] ?? null}
          changed={(draft) => changed({ ...drafts, [field.name]: draft })}
        />
      ))}
    </>
  );
}

function ObjectField(props: FieldProps) {
  const { table, field, path, draft, error, changed } = props;
  const { rules = [] } = table.inputs[field.type] ?? {};
  const problem = problemAt(error, path);
  const isOpen = draft !== null && typeof draft === 'object' && !Array.isArray(draft);
  return (
    <fieldset class="object">
      <legend>{labelOf(field)}</legend>
      <Text field={field} rules={rules} problem={problem} />
      {isOpen && (
        <Fields
          {...props}
          fields={fieldsOf(table, field)}
          drafts={draft}
          changed={(drafts: Drafts) => changed(drafts)}
        />
      )}
      {!field.required && (
        <button type="button" class="quiet small" onClick={() => changed(isOpen ? null : newEntry(table, field))}>
          {isOpen ? 'Leave out' : 'Set'} {words(field.name).toLowerCase()}
        </button>
      )}
    </fieldset>
  );
}

function ListField(props: FieldProps) {
  const { table, field, path, draft, error, changed } = props;
  const entries = Array.isArray(draft) ? draft : [];
  const one = { ...field, list: false, required: true };
  const set = (index: number, entry: Draft): void => changed(entries.map((old, at) => (at === index ? entry : old)));
  const label = words(field.name);
  return (
    <fieldset class="object">
      <legend>{labelOf(field)}</legend>
      <Text field={field} problem={problemAt(error, path)} />
      {entries.map((entry, index) => (
        <div class="entry" key={index}>
          <AnyField
            {...props}
            field={{ ...one, name: `${field.name}_${index + 1}`, description: '' }}
            path={`${path}.${index}`}
            draft={entry}
            changed={(next) => set(index, next)}
          />
          <button type="button" class="quiet small" onClick={() => changed(entries.filter((_, at) => at !== index))}>
            Remove<span class="off-screen"> {`${label} ${index + 1}`}</span>
          </button>
        </div>
      ))}
      <button type="button" class="quiet small" onClick={() => changed([...entries, newEntry(table, field)])}>
        Add<span class="off-screen"> to {label}</span>
      </button>
    </fieldset>
  );
}

function Text({ field, rules = [], problem }: { field: Value; rules?: readonly string[]; problem: string | null }) {
  const text = [field.description, ...rules].filter(Boolean).join(' ');
  if (!text && !problem) return null;
  return <small class={problem ? 'problem' : undefined}>{problem ?? <Prose text={text} />}</small>;
}

function TextField({ table, place, field, path, draft, error, isEdit, changed }: FieldProps) {
  const [id, problem] = [useId(), problemAt(error, path)];
  const suggestions = useSuggestions(table, place, field);
  const given = {
    id,
    name: path,
    value: typeof draft === 'string' ? draft : '',
    required: Boolean(field.required) && !isEdit,
    placeholder: exampleOf(field),
    'aria-invalid': problem ? true : undefined,
    'aria-describedby': `${id}-hint`,
    onInput: (event: { currentTarget: { value: string } }) => changed(event.currentTarget.value),
  };
  const isFree = field.type === 'String' && !field.format && !field.pattern && !isSecret(field);
  const isLong = isFree && (field.maxLength ?? 0) > 1_000;
  return (
    <Labelled id={id} field={field} problem={problem}>
      {suggestions.list}
      {isLong ? (
        <textarea {...given} rows={4} spellcheck={false} />
      ) : (
        <input {...inputOf({ ...given, ...typeOf(field), ...suggestions.given })} onFocus={suggestions.load} />
      )}
    </Labelled>
  );
}

/** Attributes that fit each type of input. */
const inputOf = (given: object): object => given;

const LEAST: Record<string, number> = { Int: -(2 ** 31), ByteCount: 0 };
const MOST: Record<string, number> = { Int: 2 ** 31 - 1, ByteCount: Number.MAX_SAFE_INTEGER };

/** Attributes of an input, by the type and the bounds of its value. */
function typeOf(field: Value): Record<string, string | number> {
  if (isSecret(field)) return { type: 'password', autocomplete: 'new-password' };
  if (field.type === 'DateTime') return { type: 'datetime-local', step: 1 };
  if (!/^(Int|Float|ByteCount)$/.test(field.type)) return { type: 'text', autocomplete: 'off' };
  // Beyond them GraphQL refuses the whole request, and names no field.
  const { min = LEAST[field.type], max = MOST[field.type] } = field;
  return {
    type: 'number',
    step: field.type === 'Float' ? 'any' : 1,
    ...(min !== undefined && { min }),
    ...(max !== undefined && { max }),
  };
}

function exampleOf({ example, default: usual, type }: Value): string {
  if (type === 'DateTime') return '';
  const shown = usual ?? example;
  return shown === undefined || typeof shown === 'object' ? '' : String(shown);
}

function SelectField({ table, field, path, draft, error, changed }: FieldProps) {
  const [id, problem] = [useId(), problemAt(error, path)];
  const values = valuesOf(field, table.enums[field.type]);
  const usual = field.default === undefined ? '' : `Default (${wordOf(field, String(field.default))})`;
  return (
    <Labelled id={id} field={field} problem={problem}>
      <select
        id={id}
        name={path}
        value={typeof draft === 'string' ? draft : ''}
        aria-invalid={problem ? true : undefined}
        aria-describedby={`${id}-hint`}
        onChange={(event) => changed(event.currentTarget.value)}
      >
        <option value="">{usual || (field.required ? 'Choose one' : 'Not set')}</option>
        {values.map(({ value, description }) => (
          <option key={value} value={value} title={description}>
            {wordOf(field, value)}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

function valuesOf({ sorts }: Value, values?: readonly EnumValue[]): readonly EnumValue[] {
  if (sorts) return sorts.flatMap((key) => [{ value: key }, { value: `-${key}` }]);
  return values ?? [{ value: 'true' }, { value: 'false' }];
}

function wordOf({ type, sorts }: Value, value: string): string {
  if (type === 'Boolean') return value === 'true' ? 'yes' : 'no';
  if (sorts) return value.startsWith('-') ? `${words(value.slice(1))}, descending` : words(value);
  return value.replace(/_/g, ' ');
}

interface LabelledProps {
  id: string;
  field: Value;
  problem: string | null;
  children: ComponentChildren;
}

function Labelled({ id, field, problem, children }: LabelledProps) {
  const hint = [field.description, boundsOf(field)].filter(Boolean).join(' ');
  return (
    <div class="field">
      <label for={id}>{labelOf(field)}</label>
      {children}
      <small id={`${id}-hint`} class={problem ? 'problem' : undefined}>
        {problem ?? <Prose text={hint} />}
      </small>
    </div>
  );
}

function labelOf({ name, required }: Value): string {
  return `${words(name)}${required ? '' : ' (optional)'}`;
}

function boundsOf({ min, max, type, maxLength }: Value): string {
  if (min !== undefined && max !== undefined) return `From ${min} to ${max}.`;
  if (min !== undefined && min !== 0) return `At least ${min}.`;
  if (max !== undefined && type !== 'ByteCount') return `At most ${max}.`;
  return maxLength !== undefined && maxLength < 1_000 ? `At most ${maxLength} characters.` : '';
}
