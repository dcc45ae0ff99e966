//! Classes of tasks: those that need the same resources lie apart from others, and, as long as a
//! queue has few of them, those that need about as much of each.
//!
//! Within a class minima over each resource say much about single tasks; over a mixture of small
//! needs of one thing with large needs of another they would say nothing. A class's number is
//! never used for anything else, so reading what classes there are conflicts with nobody.

use super::Amounts;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_base::limits::TASK_RESOURCES_MAX;
use quoin_layout::{TaskClass, TaskRegistry};
use quoin_store::{Isolation, StoreError};

/// Classes that a task queue makes of tasks by how much they need, besides those by what.
pub(super) const FINE_CLASSES_MAX: usize = 16;

/// What a task needs, by the numbers of a queue's registry.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Classified {
    pub(super) class: u32,
    pub(super) mask: u8,
    pub(super) amounts: Vec<f64>,
}

/// A task's needs as the registry would have them.
pub(super) struct Classifying {
    classified: Classified,
    registry: TaskRegistry,
    /// The registry must be written for it.
    is_new: bool,
}

/// The binary exponent of an amount, which is positive.
fn octave(amount: f64) -> u16 {
    (amount.to_bits() >> 52) as u16
}

/// The least amount of an octave.
fn octave_begin(octave: u16) -> f64 {
    f64::from_bits(u64::from(octave) << 52)
}

/// Amounts by the numbers of resources, with those resources' names.
pub(super) fn named(registry: &TaskRegistry, mask: u8, amounts: &[f64]) -> Amounts {
    let names = registry.resources.iter().enumerate();
    let needed = names.filter(|(number, _)| mask & (1 << number) != 0);
    Amounts(
        needed
            .zip(amounts)
            .map(|((_, name), amount)| (name.clone(), *amount))
            .collect(),
    )
}

/// What a consumer has of each resource of a class; `None` where nothing of the class can fit.
pub(super) fn having_for(
    registry: &TaskRegistry,
    class: &TaskClass,
    having: &Amounts,
) -> Option<Vec<f64>> {
    let names = registry.resources.iter().enumerate();
    let needed = names.filter(|(number, _)| class.mask & (1 << number) != 0);
    let mut amounts = Vec::new();
    for (at, (_, name)) in needed.enumerate() {
        let amount = having.of(name);
        let least = class.octaves.get(at).copied().map_or(0.0, octave_begin);
        if amount <= 0.0 || amount < least {
            return None;
        }
        amounts.push(amount);
    }
    Some(amounts)
}

/// Finds the class of a task with these needs, or adds it to the registry.
pub(super) fn classify(
    mut registry: TaskRegistry,
    needs: &Amounts,
) -> Result<Classifying, CommandError> {
    let mut is_new = false;
    let mut by_number: Vec<(usize, f64)> = Vec::new();
    for (name, amount) in needs.0.iter().filter(|(_, amount)| *amount > 0.0) {
        let known = registry.resources.iter().position(|known| known == name);
        let number = match known {
            Some(number) => number,
            None if registry.resources.len() >= TASK_RESOURCES_MAX => {
                return Err(too_many_resources());
            }
            None => {
                registry.resources.push(name.clone());
                is_new = true;
                registry.resources.len() - 1
            }
        };
        by_number.push((number, *amount));
    }
    by_number.sort_by_key(|(number, _)| *number);
    let mask = by_number
        .iter()
        .fold(0_u8, |mask, (number, _)| mask | (1 << number));
    let amounts: Vec<f64> = by_number.iter().map(|(_, amount)| *amount).collect();
    // A single resource's minima are exact, so there is nothing to gain from octaves.
    let octaves: Vec<u16> = if amounts.len() > 1 {
        amounts.iter().map(|amount| octave(*amount)).collect()
    } else {
        Vec::new()
    };
    let fine = TaskClass { mask, octaves };
    let plain = TaskClass {
        mask,
        octaves: Vec::new(),
    };
    let place = |wanted: &TaskClass| registry.classes.iter().position(|class| class == wanted);
    let fine_classes = registry
        .classes
        .iter()
        .filter(|class| !class.octaves.is_empty())
        .count();
    let class = match place(&fine).or_else(|| {
        // Full of fine classes: whatever is new joins those that need the same resources.
        (fine_classes >= FINE_CLASSES_MAX)
            .then(|| place(&plain))
            .flatten()
    }) {
        Some(class) => class,
        None => {
            let is_full = fine_classes >= FINE_CLASSES_MAX;
            registry.classes.push(if is_full { plain } else { fine });
            is_new = true;
            registry.classes.len() - 1
        }
    };
    Ok(Classifying {
        classified: Classified {
            class: u32::try_from(class).unwrap_or(u32::MAX),
            mask,
            amounts,
        },
        registry,
        is_new,
    })
}

/// Refuses more resources than a queue can know.
pub(crate) fn too_many_resources() -> CommandError {
    CommandError::Text(
        format!("ERR a task queue knows at most {TASK_RESOURCES_MAX} resources").into(),
    )
}

impl WriteContext<'_> {
    /// Writes what the registry has not got yet. Conflicts with others who do the same.
    pub(super) async fn task_register(
        &self,
        key: &OpenKey,
        classifying: Classifying,
    ) -> Result<Classified, StoreError> {
        if classifying.is_new {
            // For the conflict.
            self.task_registry(key, Isolation::Serializable).await?;
            let row = self.layout().task_registry_key(key.data());
            self.transaction.set(&row, &classifying.registry.encode());
        }
        Ok(classifying.classified)
    }
}

/// The class of these needs, and the registry with it.
#[cfg(test)]
pub(super) fn class_of(registry: TaskRegistry, needs: &[(&str, f64)]) -> (TaskRegistry, u32) {
    let needs = Amounts(
        needs
            .iter()
            .map(|(name, amount)| (bytes::Bytes::copy_from_slice(name.as_bytes()), *amount))
            .collect(),
    );
    let classifying = classify(registry, &needs).unwrap();
    (classifying.registry, classifying.classified.class)
}
