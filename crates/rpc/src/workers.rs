//! The workers of a session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use deftool_lang::tool::AttachmentStore;
use deftool_worker::Worker;
use tokio::sync::OnceCell;

use crate::host::{ChosenWorker, ContinueRequest, Host, OpenedWorker};

/// The workers that were used, by name and whether they are those of the user.
#[derive(Default)]
pub(crate) struct Workers(Mutex<HashMap<(String, bool), Opening>>);

/// A worker that is open or being opened.
type Opening = Arc<OnceCell<OpenedWorker>>;

impl Workers {
    /// Returns a worker, and what continues the requests of its journal. Opens it if it is not open.
    pub(crate) async fn get(
        &self,
        chosen: ChosenWorker,
        host: &Host,
    ) -> Result<(Worker, Option<Arc<ContinueRequest>>), String> {
        let cell = {
            let mut workers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(workers.entry((chosen.spec.name.value.clone(), chosen.is_user)).or_default())
        };
        let opened = cell.get_or_try_init(|| (host.open_worker)(chosen)).await?;
        Ok((opened.worker.clone(), opened.continue_request.clone()))
    }

    /// Returns the worker of a request.
    pub(crate) fn of_request(&self, id: &str) -> Option<Worker> {
        let workers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut opened = workers.values().filter_map(|cell| cell.get());
        opened.find(|opened| opened.worker.request_status(id).is_some()).map(|opened| opened.worker.clone())
    }

    /// Adds the images and audio of the requests that the workers keep to `store`.
    pub(crate) fn store_attachments(&self, store: &mut AttachmentStore) {
        let workers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        workers
            .values()
            .filter_map(|cell| cell.get())
            .for_each(|opened| opened.worker.store_attachments(store));
    }

    /// Ends all workers.
    pub(crate) async fn close(&self) {
        let workers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let opened = workers.into_values().filter_map(|cell| Arc::into_inner(cell)?.into_inner());
        let opened: Vec<OpenedWorker> = opened.collect();
        for OpenedWorker { worker, .. } in &opened {
            worker.stop();
        }
        for OpenedWorker { worker, close, .. } in opened {
            worker.stopped().await;
            close().await;
        }
    }
}
