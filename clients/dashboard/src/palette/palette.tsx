// The palette over a page: a modal dialog with the combobox in it.
import { useLayoutEffect } from 'preact/hooks';
import type { PaletteMode } from '../keyboard';
import { useModal } from '../parts/modal';
import { CommandBox } from './command_box';

export function Palette({ mode, onClose }: { mode: PaletteMode; onClose(): void }) {
  const element = useModal();
  useLayoutEffect(() => element.current?.querySelector('input')?.focus(), []);
  return (
    <dialog
      ref={element}
      class="palette"
      aria-label="Command palette"
      onClose={onClose}
      onClick={(event) => event.target === element.current && onClose()}
    >
      <CommandBox mode={mode} onDone={onClose} />
    </dialog>
  );
}
