import { useState } from 'preact/hooks';

/** A text to take along, with a button that copies it. */
export function Copyable({ text, label, shown = text }: { text: string; label: string; shown?: string }) {
  return (
    <div class="copyable">
      <code tabIndex={0} role="textbox" aria-readonly="true" aria-label={label}>
        {shown}
      </code>
      <CopyButton text={text} label={label} />
    </div>
  );
}

interface CopyButtonProps {
  text: string;
  /** What is copied. */
  label: string;
  /** Where nothing beside the button says what it copies. */
  shown?: string;
}

export function CopyButton({ text, label, shown = 'Copy' }: CopyButtonProps) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setState('copied');
    } catch {
      // Without https, browsers keep the clipboard to themselves.
      setState(copyBySelection(text) ? 'copied' : 'failed');
    }
    setTimeout(() => setState('idle'), 2_000);
  };
  const words = { idle: shown, copied: 'Copied', failed: 'Press Ctrl+C' };
  // What is seen is part of what is read out (WCAG 2.5.3).
  const named = { idle: 'Copy', copied: words.copied, failed: `${words.failed} to copy` };
  return (
    <button type="button" class="quiet small copy" aria-label={`${named[state]} ${label}`} onClick={() => void copy()}>
      <span aria-live="polite">{words[state]}</span>
    </button>
  );
}

function copyBySelection(text: string): boolean {
  const before = document.activeElement as HTMLElement | null;
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'off-screen';
  // Nothing outside of an open dialog can be selected.
  (before?.closest('dialog') ?? document.body).append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  before?.focus();
  return done;
}
