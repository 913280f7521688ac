//! The model as a whole: against published figures, against closed forms, against what must hold.
mod golden;
mod laws;
mod parts;
