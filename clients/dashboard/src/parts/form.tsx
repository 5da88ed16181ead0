// Fields with their description and what the API says of them.
import type { ComponentChildren, TargetedEvent } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { ApiError } from '../api/client';
import type { Action } from '../api/use_query';
import { useAutoFocus } from './focus';
import { useUnsavedForm } from './unsaved';

interface Fields<Values> {
  values: Values;
  set(part: Partial<Values>): void;
  /** What a field needs: its name, its value, what the API says of it. */
  of(name: keyof Values & string, action?: { error: ApiError | null }): FieldProps;
}

type FieldProps = Required<Pick<Given, 'value' | 'onInput'>> & { name: string; error: ApiError | null };

/** The texts of a form. */
export function useFields<Values extends Record<string, string>>(initial: Values): Fields<Values> {
  const [values, setValues] = useState(initial);
  const set = (part: Partial<Values>): void => setValues((before) => ({ ...before, ...part }));
  return {
    values,
    set,
    of: (name, action) => ({
      name,
      value: values[name] ?? '',
      error: action?.error ?? null,
      onInput: (event) => set({ [name]: event.currentTarget.value } as Partial<Values>),
    }),
  };
}

interface FormProps {
  /** `run` answers whether it has saved what is in the form. */
  action: Pick<Action<void>, 'run'>;
  class?: string;
  /** Such as for logging in: it may be left, whatever is in it. */
  isFleeting?: boolean;
  /** Called after each attempt. */
  done?(isSaved: boolean): void;
  onInput?(): void;
  children: ComponentChildren;
}

/** A form that is not left unasked while something in it is not saved. */
export function Form({ action, children, class: kind, isFleeting = false, done, onInput }: FormProps) {
  const { form, saved } = useUnsavedForm(!isFleeting);
  const submit = async (): Promise<void> => {
    const isSaved = await action.run();
    if (isSaved) saved();
    done?.(isSaved);
  };
  return (
    <form
      ref={form}
      class={kind}
      onInput={onInput}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {children}
    </form>
  );
}

interface Labelled {
  label: string;
  /** Path in the input of the operation, by which its errors are found. */
  name: string;
  error?: ApiError | null;
  hint?: ComponentChildren;
}

interface Given {
  type?: string;
  value?: string;
  checked?: boolean;
  required?: boolean;
  autoFocus?: boolean;
  autocomplete?: string;
  inputMode?: 'numeric';
  /** Id of a datalist. */
  list?: string;
  placeholder?: string;
  minLength?: number;
  maxLength?: number;
  min?: number;
  max?: number;
  onInput?(event: TargetedEvent<HTMLInputElement>): void;
  onChange?(event: TargetedEvent<HTMLInputElement>): void;
  onBlur?(): void;
}

/** Beside the attributes above, which fit each type of input. */
const inputOf = (given: Given): object => given;

export function Field({ label, name, error, hint, ...given }: Labelled & Given) {
  const [id, problem] = [useId(), problemOf(error, name)];
  const field = useAutoFocus(given.autoFocus ?? false);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...inputOf(given)}
        ref={field}
        id={id}
        name={name}
        aria-invalid={problem ? true : undefined}
        aria-describedby={`${id}-hint`}
      />
      <Hint id={`${id}-hint`} hint={hint} problem={problem} />
    </div>
  );
}

interface TextAreaProps extends Labelled {
  value: string;
  rows?: number;
  required?: boolean;
  placeholder?: string;
  /** Takes what the fields of `useFields` give to inputs. */
  onInput(event: TargetedEvent<HTMLInputElement>): void;
}

export function TextArea({ label, name, error, hint, onInput, ...given }: TextAreaProps) {
  const [id, problem] = [useId(), problemOf(error, name)];
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        {...given}
        id={id}
        name={name}
        spellcheck={false}
        aria-invalid={problem ? true : undefined}
        aria-describedby={`${id}-hint`}
        onInput={(event) => onInput(event as unknown as TargetedEvent<HTMLInputElement>)}
      />
      <Hint id={`${id}-hint`} hint={hint} problem={problem} />
    </div>
  );
}

interface SelectProps extends Labelled {
  /** The column of a table says the same to those who see it. */
  isLabelHidden?: boolean;
  value: string;
  onChange(value: string): void;
  options: readonly { value: string; label: string; disabled?: boolean }[];
}

export function Select({ label, name, error, hint, value, options, onChange, isLabelHidden }: SelectProps) {
  const [id, problem] = [useId(), problemOf(error, name)];
  return (
    <div class="field">
      <label for={id} class={isLabelHidden ? 'off-screen' : undefined}>
        {label}
      </label>
      <select
        id={id}
        name={name}
        value={value}
        aria-invalid={problem ? true : undefined}
        aria-describedby={`${id}-hint`}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value} disabled={option.disabled ?? false}>
            {option.label}
          </option>
        ))}
      </select>
      <Hint id={`${id}-hint`} hint={hint} problem={problem} />
    </div>
  );
}

export function Check({ label, name, error, hint, ...given }: Labelled & Given) {
  const [id, problem] = [useId(), problemOf(error, name)];
  return (
    <div class="field">
      <label class="check">
        <input {...inputOf(given)} type="checkbox" name={name} aria-describedby={`${id}-hint`} />
        {label}
      </label>
      <Hint id={`${id}-hint`} hint={hint} problem={problem} />
    </div>
  );
}

function Hint({ id, hint, problem }: { id: string; hint: ComponentChildren; problem: string | null }) {
  return (
    <small id={id} class={problem ? 'problem' : undefined}>
      {problem ?? hint}
    </small>
  );
}

/** What the API says of a field, in its words. */
function problemOf(error: ApiError | null | undefined, name: string): string | null {
  const found = error?.errors.find(({ field }) => field === name || field.endsWith(`.${name}`));
  return found ? sentence(found.detail) : null;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

interface ProblemProps {
  error: ApiError | null;
  fields?: readonly string[];
  /** Behind the sentence. */
  beside?: ComponentChildren;
}

/** An error of a whole form. Fields that are on the page say theirs themselves. */
export function Problem({ error, fields = [], beside }: ProblemProps) {
  if (!error) return null;
  const others = error.errors.filter(({ field }) => !fields.some((one) => field === one || field.endsWith(`.${one}`)));
  const isAtFields = error.errors.length > 0 && !others.length;
  return (
    <div class="notice bad" role="alert">
      {isAtFields ? 'Some fields are invalid.' : error.message}
      {beside}
      {others.length > 0 && (
        <ul>
          {others.map(({ field, detail }) => (
            <li key={field}>
              <code>{field}</code> {detail}
            </li>
          ))}
        </ul>
      )}
      {error.code === 'approval_required' && <Approval members={error.members} />}
    </div>
  );
}

function Approval({ members: { approval_url: url } }: Pick<ApiError, 'members'>) {
  if (typeof url !== 'string' || !URL.canParse(url)) return null;
  return (
    <p>
      <a href={new URL(url).pathname}>See the approval</a>. Once it is approved, do this again.
    </p>
  );
}

export function Submit({ action, children }: { action: { isRunning: boolean }; children: ComponentChildren }) {
  return (
    <button type="submit" aria-busy={action.isRunning ? true : undefined} aria-disabled={action.isRunning}>
      {children}
    </button>
  );
}
