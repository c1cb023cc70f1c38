/** An event that this machine does not have; the message is a sentence. */
export class NoSuchEvent extends Error {
  override readonly name = 'NoSuchEvent';
}
